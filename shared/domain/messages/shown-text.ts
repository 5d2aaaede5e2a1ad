/** User-chosen texts in mails and SMS to other people. They must not contain links, which could advertise or phish. */

/** Schemes, `www.`, numeric addresses, and letters with a dot before letters (`example.com`, `例子。中国`). */
const link =
  /https?|:\/\/|www\.|\d{1,3}(?:\.\d{1,3}){3}|[\p{L}\p{N}-]\.\p{L}|[\p{L}\p{N}-][\u3002](?:[a-z]{2,}|中国|公司|网络|网址)/iu;

/** Zero-width characters, which would hide a link from the pattern but not from a reader. */
const invisible = /[\p{Cf}\p{Mn}\u115f\u1160\u3164]/gu;

/** Folds full-width letters, ligatures and other variants of a character into the plain one (Unicode NFKC). */
export const plainText = (text: string): string => text.normalize('NFKC');

/** Tells whether a text contains a link, or text that mail and SMS programs turn into one. */
export function holdsLink(text: string): boolean {
  return link.test(plainText(text.replace(invisible, '')));
}

const maxNameChars = 40;

/**
 * Returns a user name for a mail: at most 40 plain characters, or an empty text for a name with a link. The recipient may
 * be another person, and a sign-up must not send them advertisements.
 */
export function shownName(name: string): string {
  if (holdsLink(name)) return '';
  const plain = plainText(name)
    .replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
    .trim();
  const characters = [...plain];
  return characters.length <= maxNameChars ? plain : `${characters.slice(0, maxNameChars - 1).join('')}…`;
}
