/* The page without a network. Its files are kept as they were built: each is fetched with its hash, and a file with another hash is refused.
   Parts of a release are kept by their own hash, which the page checks; a campaign's manifest is asked for anew whenever there is a network. */

const FILES = {}; /* path: hash, filled in by build.py */
const BUILD = "";
const KEPT = `privet-${BUILD}`;
const PARTS = "privet-parts";
const PAGE = "/c/page";

addEventListener("install", (event) => {
  event.waitUntil(
    caches.open(KEPT).then((cache) => cache.addAll(Object.entries(FILES).map(([path, integrity]) => new Request(path, { integrity })))),
  );
});

addEventListener("activate", (event) => {
  const old = (name) => name.startsWith("privet-") && name !== KEPT && name !== PARTS;
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter(old).map((name) => caches.delete(name)))));
  clients.claim(); // not waited for: Firefox would wait for ever, and every request with it
});

addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || request.headers.has("authorization")) return;
  if (/^\/c\/[0-9a-f]{32}$/.test(pathname)) event.respondWith(kept(KEPT, PAGE, request));
  else if (pathname in FILES) event.respondWith(kept(KEPT, pathname, request));
  else if (/^\/v1\/parts\/[0-9a-f]{64}$/.test(pathname)) event.respondWith(kept(PARTS, pathname, request, true));
  else if (/^\/v1\/campaigns\/[0-9a-f]{32}$/.test(pathname)) event.respondWith(asked(pathname, request));
});

async function kept(name, key, request, keep = false) {
  const cache = await caches.open(name);
  const found = await cache.match(key);
  if (found) return found;
  const answer = await fetch(request);
  if (keep && answer.ok) await cache.put(key, answer.clone());
  return answer;
}

async function asked(key, request) {
  const cache = await caches.open(PARTS);
  try {
    const answer = await fetch(request);
    if (answer.ok) await cache.put(key, answer.clone());
    return answer;
  } catch {
    return (await cache.match(key)) ?? Response.error();
  }
}
