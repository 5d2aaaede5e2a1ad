import { z } from 'zod';

const count = z.int().min(0);

/** Name of the audit action that records an import. */
export const importAction = 'import.run';

/**
 * Report of an import: numbers of records by class, and how the import ended. Refused records are
 * listed only in the import's own file.
 */
export const importReport = z.strictObject({
  classes: z
    .record(
      z.string(),
      z.strictObject({
        read: count.describe('Objects in the files.'),
        imported: count.describe('Objects that were stored.'),
        alreadyThere: count.describe('Objects that existed already.'),
        newerInFile: count.describe('Existing objects that are newer in the file.'),
        refused: count.describe('Objects that were refused.'),
      }),
    )
    .describe('Objects by class.'),
  refused: count.describe('Refused objects of all classes.'),
  seconds: z.number().describe('Duration in seconds.'),
  isFinished: z.boolean().describe('Whether the import ended without a failure.'),
});

export type ImportReport = z.infer<typeof importReport>;
