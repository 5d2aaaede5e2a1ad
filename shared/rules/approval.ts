import { askForApproval, findApproval } from '../db/tables/scheduled-pushes.ts';
import { forecast } from '../domain/texts/texts.ts';
import type { PushRule, TargetPage } from './rule.ts';

/**
 * Pauses a push to more devices than `approvalAboveDevices` of its app before anything of it is
 * sent, until a second person approves it (protocol/admin-api.md#approvals).
 */
export const approval: PushRule = {
  of({ app, push: { expiresAt }, nowMs }) {
    const { approvalAboveDevices: above } = app.options;
    if (above === null) return undefined;
    return {
      aboveDevices: above,

      async admit({ db, push, pages }) {
        // An expired push is not sent: its devices are counted.
        if (expiresAt.getTime() <= nowMs) return undefined;
        if ((await findApproval(db, push))?.givenAt || !(await isAbove(above, pages())))
          return undefined;
        return { write: (tx) => askForApproval(tx, push, above) };
      },

      forecast: ({ devices }) => ({
        limits: devices > above ? [forecast('needsApproval', { above })] : [],
      }),
    };
  },
};

/** Counts no further than needed. */
async function isAbove(limit: number, pages: AsyncIterable<TargetPage>): Promise<boolean> {
  let devices = 0;
  for await (const { size } of pages) {
    devices += size;
    if (devices > limit) return true;
  }
  return false;
}
