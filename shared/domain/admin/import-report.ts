import { z } from 'zod';

const count = z.int().min(0);

/** Name of the audit action that records an import. */
export const importAction = 'import.run';

/**
 * Report of an import: numbers of records by class, and how the import ended. Refused records are
 * listed only in the import's own file.
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
