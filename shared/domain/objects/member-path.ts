import { refuse } from '../errors/errors.ts';
import { isMemberName } from './typed-values.ts';

const maxNameParts = 8;
const innerName = /^[^$.\p{Cc}]{1,128}$/u;

/**
 * Splits the name of a body's member, `a.b.c`, into its parts (protocol/objects.md#dotted-names). Throws 105 for an
 * invalid one.
 */
export function memberPath(name: string): [first: string, ...inner: string[]] {
  const [first = '', ...inner] = name.split('.');
  if (!isMemberName(first) || inner.length > maxNameParts || !inner.every((part) => innerName.test(part)))
    throw refuse('invalidKeyName');
  return [first, ...inner];
}
