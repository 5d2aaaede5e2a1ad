import { countLocales, localeOfRoutingKey } from '../db/tables/audience.ts';
import { addCounts } from '../db/tables/push-reports.ts';
import { countLanguages, LanguageChooser, shownLanguages } from '../domain/pushes/languages.ts';
import type { PushRule } from './rule.ts';

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
          languages: shownLanguages(countLanguages(chooser, await countLocales(tx, targets))),
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
