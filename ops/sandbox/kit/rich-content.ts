import { isJsonObject, type Json } from '../../../shared/domain/json.ts';

/** True for an https URL, which pictures and web pages of Huawei and Honor need. */
export const isHttpsUrl = (value: Json | undefined): boolean =>
  typeof value === 'string' && /^https:\/\/\S+$/.test(value) && URL.canParse(value);

/**
 * Returns the first rule that the buttons of a notification break; null if the rules are kept.
 * Huawei (v1) and Honor have the same buttons in two spellings. Independent of the connectors.
 */
export function buttonsFault(
  buttons: Json | undefined,
  names: { action: string; intentType: string },
): string | null {
  if (buttons === undefined) return null;
  if (!Array.isArray(buttons) || buttons.length > 3) return 'more than 3 buttons';
  const known = new Set(['name', names.action, names.intentType, 'intent', 'data']);
  for (const button of buttons) {
    if (!isJsonObject(button)) return 'a button that is not an object';
    const { name, intent, data } = button;
    const type = button[names.action];
    if (Object.keys(button).some((one) => !known.has(one))) return 'an unknown member of a button';
    if (typeof name !== 'string' || name === '' || [...name].length > 40)
      return 'a button without a name';
    if (![0, 1, 2, 3, 4].some((one) => one === type)) return `${names.action} of a button`;
    if (type === 2 && !isHttpsUrl(intent)) return 'a button whose page is not https';
    if (type === 1 && typeof intent !== 'string') return 'a button without intent';
    if (data !== undefined && (typeof data !== 'string' || [...data].length > 1024))
      return 'data of a button that is no text';
  }
  return null;
}
