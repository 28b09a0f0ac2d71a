/* A camera's frames, one after the other, as fast as they can be looked at. */

import { grab } from "./picture.js";

/** Calls `look` with every frame that there is time for and `rate` with frames per second; returns a way to stop.
    `size` is how many pixels the release takes from side to side: frames need not be much larger. */
export async function watch(video, size, look, rate) {
  let stream;
  try {
    const width = { ideal: Math.max(4 * size, 320) };
    stream = await navigator.mediaDevices.getUserMedia({ video: { width, facingMode: "user" }, audio: false });
  } catch {
    throw new Error("There is no camera, or the browser was told not to use it. Choose a photo instead.");
  }
  video.srcObject = stream;
  await video.play();
  const live = { on: true, ended() {}, stop };
  const done = loop().catch((error) => {
    release();
    live.ended(error);
  });

  async function loop() {
    let [frames, since] = [0, performance.now()];
    while (live.on) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      if (!video.videoWidth) continue;
      await look(grab(video, video.videoWidth, video.videoHeight));
      frames += 1;
      const passed = performance.now() - since;
      if (passed > 1000) {
        rate((1000 * frames) / passed);
        [frames, since] = [0, performance.now()];
      }
    }
  }

  /** When this is done, the last frame was looked at and the camera's light is off. */
  async function stop() {
    if (!live.on) return;
    release();
    await done;
    live.ended();
  }

  function release() {
    live.on = false;
    stream.getTracks().forEach((track) => track.stop());
    video.srcObject = null;
  }

  return live;
}
