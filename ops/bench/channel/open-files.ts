import { z } from 'zod';

const report = z.object({
  userLimits: z.object({ open_files: z.object({ hard: z.union([z.number(), z.string()]) }) }),
});

/** Returns the limit of open files of a process. Node raises its limit to the hard one at its start. */
export function openFilesAllowed(): number {
  const parsed = report.safeParse(process.report?.getReport());
  const hard = parsed.data?.userLimits.open_files.hard;
  return typeof hard === 'number' ? hard : Number.POSITIVE_INFINITY;
}
