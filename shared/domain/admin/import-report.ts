import { z } from 'zod';

const count = z.int().min(0);

/** Action of the audit under which an import is written. */
export const importAction = 'import.run';

/**
 * Report of an import: records by class, and how it ended. Refused records are named by the file of
 * the import only.
 */
export const importReport = z.strictObject({
  classes: z.record(
    z.string(),
    z.strictObject({
      read: count,
      imported: count,
      alreadyThere: count,
      newerInFile: count,
      refused: count,
    }),
  ),
  refused: count,
  seconds: z.number(),
  isFinished: z.boolean(),
});

export type ImportReport = z.infer<typeof importReport>;
