import { askForApproval, findApproval } from '../db/tables/scheduled-pushes.ts';
import { forecast } from '../domain/texts/texts.ts';
import type { PushRule, TargetPage } from './rule.ts';

/**
 * Pauses a push to more devices than `approvalAboveDevices` of its app, before its first message is
 * sent. A second person must approve it (protocol/admin-api.md#approvals).
 */
export const approval: PushRule = {
  of({ app, push: { expiresAt }, nowMs }) {
    const { approvalAboveDevices: above } = app.options;
    if (above === null) return undefined;
    return {
      aboveDevices: above,

      async admit({ db, push, pages }) {
        // An expired push needs no approval, because it is not sent. Planning only counts its
        // devices.
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

/** Returns whether the audience is larger than `limit`. Stops counting at the limit. */
async function isAbove(limit: number, pages: AsyncIterable<TargetPage>): Promise<boolean> {
  let devices = 0;
  for await (const { size } of pages) {
    devices += size;
    if (devices > limit) return true;
  }
  return false;
}
