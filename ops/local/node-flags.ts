/**
 * Node flags of a dispatcher. By default V8 gives every thread of a large machine 134 MB for new objects and lets old
 * garbage grow to gigabytes before it collects. The limits keep a dispatcher under 400 MB. The second one also applies to each
 * worker thread, in place of that of `dispatcher/sending/pool.ts`; for the first one `dispatcher/main.ts` has another.
 */
export const dispatcherFlags = ['--max-semi-space-size=16', '--max-old-space-size=512'];

/**
 * Environment of a dispatcher: glibc otherwise opens an arena for allocations for each thread, and keeps in each what was
 * freed. With 4 threads two arenas save 30 MB. Other C libraries ignore the variable; a value of the operator goes first.
 */
export const dispatcherMemory = { MALLOC_ARENA_MAX: '2' };

/**
 * Node flags of an api. It holds up to 20,000 device channels and sends replies of several megabytes, so its limits are
 * wider. They make V8 collect the garbage of large replies before it takes more memory.
 */
export const apiFlags = ['--max-semi-space-size=8', '--max-old-space-size=1024'];

/**
 * Node flags of an import. Its objects live for one batch: with a small space for new ones, the installations of a
 * large file take a fifth less memory and no more CPU time.
 */
export const importFlags = ['--max-semi-space-size=4'];
