/**
 * How the process of a dispatcher is to be started. Left to itself V8 gives every thread of a large machine
 * 134 MB for new objects and lets old garbage grow to gigabytes before it looks: the bounds cost a few percent
 * of processor time and keep a dispatcher under 400 MB. Its threads get theirs from `dispatcher/pool.ts`.
 */
export const dispatcherFlags = ['--max-semi-space-size=8', '--max-old-space-size=512'];
