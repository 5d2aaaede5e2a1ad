import { z } from 'zod';

const report = z.object({
  userLimits: z.object({ open_files: z.object({ hard: z.union([z.number(), z.string()]) }) }),
});

/** Files that a process may have open: Node raises its own limit to the hard one when it starts. */
export function openFilesAllowed(): number {
  const parsed = report.safeParse(process.report?.getReport());
  const hard = parsed.data?.userLimits.open_files.hard;
  return typeof hard === 'number' ? hard : Number.POSITIVE_INFINITY;
}
