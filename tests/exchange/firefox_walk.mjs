/* The participant's main path in Firefox: open, choose a photo, send, see the ledger, withdraw. Reads {puppeteer, firefox, link, photo, shots}
   from standard input and prints what was read at each step as JSON. */

import { readFileSync } from "node:fs";

const { puppeteer, firefox, link, photo, shots } = JSON.parse(readFileSync(0, "utf-8"));
const { launch } = await import(puppeteer);
const browser = await launch({ browser: "firefox", executablePath: firefox, headless: true });
const said = {};
try {
  const page = await browser.newPage();
  const shoot = async (name) => {
    for (const width of [1280, 375]) {
      await page.setViewport({ width, height: 800 });
      const fits = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
      if (!fits) throw new Error(`${name} sticks out at ${width}`);
      if (shots) await page.screenshot({ path: `${shots}/firefox-${name}-${width}.png`, fullPage: true });
    }
  };
  const text = (selector) => page.$eval(selector, (element) => element.innerText);
  await page.goto(link);
  await page.waitForSelector("body[data-ready=yes]", { timeout: 120_000 });
  said.claim = await text("#hides");
  await shoot("1-open");
  await (await page.$("#file")).uploadFile(photo);
  await page.waitForSelector("#send:not([hidden])", { timeout: 60_000 });
  said.leaving = await text("#leaving");
  said.disabled = await page.$eval("#submit", (button) => button.disabled);
  await shoot("2-chosen");
  await page.click("#consent");
  await page.click("#submit");
  await page.waitForSelector("#receipts li[data-state=stored]", { timeout: 60_000 }).catch(async () => {
    throw new Error(`nothing was stored: ${await text("#status")}`);
  });
  said.ledger = await text("#ledger");
  await shoot("3-sent");
  await page.evaluate(() => [...document.querySelectorAll("#receipts button")].find((one) => one.textContent === "Withdraw").click());
  await page.waitForSelector("#receipts li[data-state=withdrawn]", { timeout: 60_000 });
  said.withdrawn = await text("#status");
  await shoot("4-withdrawn");
} finally {
  await browser.close();
}
console.log(JSON.stringify(said));
