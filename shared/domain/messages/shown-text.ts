/** Texts that a user chose and that stand in a mail or an SMS to somebody else: they must not advertise an address. */

/** Schemes, `www.`, numeric addresses, and letters with a dot before letters (`example.com`, `例子。中国`). */
const link =
  /https?|:\/\/|www\.|\d{1,3}(?:\.\d{1,3}){3}|[\p{L}\p{N}-]\.\p{L}|[\p{L}\p{N}-][\u3002](?:[a-z]{2,}|中国|公司|网络|网址)/iu;

/** Characters without a width, which would hide a link from the pattern and not from a reader. */
const invisible = /[\p{Cf}\p{Mn}\u115f\u1160\u3164]/gu;

/** Folds full-width letters, ligatures and other variants of a character into the plain one (Unicode NFKC). */
export const plainText = (text: string): string => text.normalize('NFKC');

/** Whether a text is a link or what a mail or SMS program would turn into one. */
export function holdsLink(text: string): boolean {
  return link.test(plainText(text.replace(invisible, '')));
}

const maxNameChars = 40;

/**
 * The name of a user as a mail to an address that may be somebody else's shows it: in plain characters and at most
 * 40 of them. Empty where it holds a link, so that a sign-up with a chosen name sends nobody an advertisement.
 */
export function shownName(name: string): string {
  if (holdsLink(name)) return '';
  const plain = plainText(name)
    .replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
    .trim();
  const characters = [...plain];
  return characters.length <= maxNameChars ? plain : `${characters.slice(0, maxNameChars - 1).join('')}…`;
}
