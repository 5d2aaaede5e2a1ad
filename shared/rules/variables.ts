import { countFallbacks, countFallbacksOf, readFieldValues } from '../db/tables/audience.ts';
import { addCounts } from '../db/tables/push-reports.ts';
import { replyVariables } from '../domain/pushes/variables.ts';
import { idsOf, type PushRule } from './rule.ts';

/**
 * Counts the recipients whose texts hold a field of the device, and those with the default in its
 * place (protocol/push.md#variables). The values are read when a batch is sent.
 */
export const variables: PushRule = {
  of({ push: { pushOrder } }) {
    const { variables: all } = pushOrder;
    if (!all) return undefined;
    return {
      async count(tx, push, page) {
        const ids = idsOf(page);
        await addCounts(tx, push, 'variables', await countFallbacksOf(tx, { ...push, ids }, all));
      },

      forecast: async ({ tx, targets }) => ({
        members: { variables: replyVariables(await countFallbacks(tx, targets, all)) },
      }),

      /**
       * Says for each variable whether the device has its field now; the value itself is personal.
       */
      async explain({ db, push: { appId }, device }) {
        const values =
          device && (await readFieldValues(db, { appId, ids: [device.id] }, all)).get(device.id);
        if (!values) return { texts: [] };
        const shown = Object.entries(all).map(([name, { field }], i) => ({
          name,
          field,
          isDefault: (values[i] ?? null) === null,
        }));
        const texts = shown.map(({ name, field, isDefault }) => ({
          code: isDefault ? ('variableDefault' as const) : ('variableField' as const),
          params: { name, field },
        }));
        return { texts, members: { variables: shown } };
      },
    };
  },
};
