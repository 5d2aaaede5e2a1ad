import { domainToASCII } from 'node:url';

/** Domains that ignore dots before the `@`, with the name that they share. */
const dotless = new Map([
  ['gmail.com', 'gmail.com'],
  ['googlemail.com', 'gmail.com'],
]);

/**
 * Returns one text for all spellings of an address that reach the same mailbox, to count mails to
 * it: capitals, compatible characters, a tag behind `+`, the two forms of a domain, and dots where
 * a provider ignores them. Accounts tell these addresses apart; the text is for limits only.
 */
export function mailboxOf(email: string): string {
  const folded = email.normalize('NFKC').trim().toLowerCase();
  const at = folded.lastIndexOf('@');
  const [name = ''] = folded.slice(0, at).replaceAll('"', '').split('+');
  const sent = folded.slice(at + 1).replace(/\.+$/, '');
  const domain = domainToASCII(sent) || sent;
  const shared = dotless.get(domain);
  return shared === undefined ? `${name}@${domain}` : `${name.replaceAll('.', '')}@${shared}`;
}
