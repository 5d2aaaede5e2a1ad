import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { profileClassNames } from '../../shared/domain/pushes/message-classes.ts';
import type { Connector } from './connector.ts';

/** Maximum members of one class, and maximum size of all classes of a profile as JSON text. */
const maxMembers = 20;
const maxBytes = 16_384;

/**
 * Checks `messageClasses` of a profile (protocol/admin-api.md#message-classes-of-a-profile). Returns
 * the error, which names the member; null if it is valid.
 */
export function classesError(
  { id, classError: checkClass }: Pick<Connector, 'id' | 'classError'>,
  classes: Json,
): string | null {
  if (!isJsonObject(classes)) return 'messageClasses must be an object';
  if (!checkClass) return `messageClasses must not be given: ${id} has no message classes`;
  for (const [name, members] of Object.entries(classes)) {
    const error = classError(name, members, checkClass);
    if (error !== null) return error;
  }
  return Buffer.byteLength(JSON.stringify(classes)) > maxBytes
    ? `messageClasses must have at most ${maxBytes} bytes`
    : null;
}

function classError(
  name: string,
  members: Json,
  check: (members: JsonObject, path: string) => string | null,
): string | null {
  const path = `messageClasses.${name.slice(0, 40)}`;
  if (!profileClassNames.some((known) => known === name))
    return `${path} is no message class: expected one of ${profileClassNames.join(', ')}`;
  if (!isJsonObject(members)) return `${path} must be an object`;
  if (Object.keys(members).length > maxMembers)
    return `${path} must have at most ${maxMembers} members`;
  return check(members, path);
}
