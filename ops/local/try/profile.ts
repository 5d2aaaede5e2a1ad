/**
 * Name of the demo app's Web Push profile for real browsers. It has no `endpoint`, so its pushes go
 * to the browser's push service, not to the sandbox.
 */
export const browserProfile = 'browser';
