import { countLocales, localeOfTraits } from '../db/tables/audience.ts';
import { addCounts } from '../db/tables/push-reports.ts';
import { countLanguages, LanguageChooser, replyLanguages } from '../domain/pushes/languages.ts';
import type { PushRule } from './rule.ts';

/**
 * Chooses a translation for each device by its `locale` (protocol/push.md#languages). A batch has
 * one language.
 */
export const languages: PushRule = {
  of({ push: { pushOrder } }) {
    if (!pushOrder.languages) return undefined;
    const chooser = new LanguageChooser(pushOrder.languages);
    return {
      group: (traits) => ({ language: chooser.choose(localeOfTraits(traits)).language }),

      async count(tx, push, { idsByTraits }) {
        const groups = [...idsByTraits].map(([traits, { length }]) => ({
          locale: localeOfTraits(traits),
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
       * A planned device has the language of its batch, any other the language that it would get.
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
