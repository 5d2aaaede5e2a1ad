import { claimFailures } from '../db/tables/push-failures.ts';
import { idsOf, keepTargets, type PushRule } from './rule.ts';

/**
 * Claims the recipients of a redrive in the transaction that writes their batches. No other
 * redrive, and no repeat after a crash, can send to them again (protocol/admin-api.md#redrive).
 */
export const redrive: PushRule = {
  of({ push: { pushOrder } }) {
    const { redrive: selection } = pushOrder;
    if (!selection) return undefined;
    return {
      async claim(tx, push, page) {
        if (page.size === 0) return page;
        const claimed = new Set(
          await claimFailures(tx, { ...push, failedId: selection.pushId }, idsOf(page)),
        );
        return claimed.size === page.size ? page : keepTargets(page, (id) => claimed.has(id));
      },

      tally: (_page, size) => [{ metric: 'redrivenRecipients', labels: {}, recipients: size }],
    };
  },
};
