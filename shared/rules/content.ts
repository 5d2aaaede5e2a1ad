import { countLocales } from '../db/tables/audience.ts';
import { countFallbacks, countFallbacksOf, readFieldValues } from '../db/tables/field-values.ts';
import { addCounts } from '../db/tables/push-reports.ts';
import { localeOfRoutingKey } from '../db/tables/routing-keys.ts';
import { countLanguages, LanguageChooser, replyLanguages } from '../domain/pushes/languages.ts';
import { replyVariables } from '../domain/pushes/variables.ts';
import { idsOf, type PushRule } from './rule.ts';

/**
 * Chooses a translation for each device by its `locale` (protocol/push.md#languages). All
 * recipients of a batch have the same language.
 */
export const languages: PushRule = {
  of({ push: { pushOrder } }) {
    if (!pushOrder.languages) return undefined;
    const chooser = new LanguageChooser(pushOrder.languages);
    return {
      group: (routingKey) => ({
        language: chooser.choose(localeOfRoutingKey(routingKey)).language,
      }),

      async count(tx, push, { idsByRoutingKey }) {
        const groups = [...idsByRoutingKey].map(([routingKey, { length }]) => ({
          locale: localeOfRoutingKey(routingKey),
          devices: length,
        }));
        await addCounts(tx, push, 'languages', countLanguages(chooser, groups));
      },

      forecast: async ({ tx, targets }) => ({
        members: {
          languages: replyLanguages(countLanguages(chooser, await countLocales(tx, targets))),
        },
      }),

      /**
       * A planned device has the language of its batch. For any other device, reports the language
       * that it would get.
       */
      explain({ device, batch }) {
        if (!device && !batch) return { texts: [] };
        const locale = device?.locale ?? null;
        const language = batch ? batch.language : chooser.choose(locale).language;
        const code = language === null ? 'languageOfData' : 'languageChosen';
        return { texts: [{ code, params: { locale, language } }], members: { language } };
      },
    };
  },
};

/**
 * Counts the recipients whose text contains a field of the device, and the recipients that get the
 * default instead (protocol/push.md#variables). The values are read when a batch is sent.
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
       * Reports for each variable whether the device currently has its field. The value itself is
       * personal and is not reported.
       */
      async explain({ db, push: { appId }, device }) {
        const values =
          device && (await readFieldValues(db, { appId, ids: [device.id] }, all)).get(device.id);
        if (!values) return { texts: [] };
        const described = Object.entries(all).map(([name, { field }], i) => ({
          name,
          field,
          isDefault: (values[i] ?? null) === null,
        }));
        const texts = described.map(({ name, field, isDefault }) => ({
          code: isDefault ? ('variableDefault' as const) : ('variableField' as const),
          params: { name, field },
        }));
        return { texts, members: { variables: described } };
      },
    };
  },
};
