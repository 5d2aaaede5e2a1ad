/**
 * How the process of a dispatcher is to be started. Left to itself V8 gives every thread of a large machine
 * 134 MB for new objects and lets old garbage grow to gigabytes before it looks: the bounds cost a few percent
 * of processor time and keep a dispatcher under 400 MB. The first one holds for each of its threads too, whatever
 * they are given; their old objects get their bound from `dispatcher/sending/pool.ts`.
 */
export const dispatcherFlags = ['--max-semi-space-size=4', '--max-old-space-size=512'];

/**
 * The same for an api: it holds up to 20,000 device channels and answers with megabytes, so that the bounds are wider.
 * They make V8 collect what large replies leave behind before it takes more memory.
 */
export const apiFlags = ['--max-semi-space-size=8', '--max-old-space-size=1024'];
