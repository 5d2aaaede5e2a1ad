import { isRecord, type JsonRecord, type JsonValue } from './json-text.ts';
import type { VisibleMessage } from './previews.ts';

/** Variable of a draft: its field, and the default for devices without the field. */
interface Variable {
  name: string;
  field: string;
  fallback: string;
}

/** Variable name in double braces. */
const placeholder = /\{\{([^{}]*)\}\}/g;

/**
 * Returns a message with sample values instead of defaults. The dry run fills in the defaults; the
 * texts of the draft show where the variables are. `sampleOf` returns a frequent value of a field.
 * A variable without a sample and default is shown by its name.
 */
export function withSamples(
  message: VisibleMessage,
  body: JsonRecord,
  sampleOf: (field: string) => string | undefined,
): VisibleMessage {
  const variables = variablesIn(body);
  if (variables.length === 0) return message;
  const defaults = new Map(variables.map(({ name, fallback }) => [name, fallback]));
  const samples = new Map(
    variables.map(({ name, field, fallback }) => [
      name,
      sampleOf(field) ?? (fallback === '' ? `{{${name}}}` : fallback),
    ]),
  );
  const templates = textsIn([body.data ?? null, body.languages ?? null]).filter((text) =>
    text.includes('{{'),
  );
  const bySentText = new Map(
    templates.map((text) => [filled(text, defaults), filled(text, samples)]),
  );
  const show = (text: string) => bySentText.get(text) ?? text;
  const [title, text] = [show(message.title), show(message.text)];
  return {
    ...message,
    title,
    text,
    subtitle: show(message.subtitle),
    isSilent: title === '' && text === '',
  };
}

/** Returns a text of the draft with the values of one device. Without a value, uses the default. */
export function filledText(
  text: string,
  body: JsonRecord,
  memberOf: (field: string) => unknown,
): string {
  const values = variablesIn(body).map(({ name, field, fallback }): [string, string] => {
    const value = memberOf(field);
    const isPlain = typeof value === 'string' || typeof value === 'number';
    return [name, isPlain ? String(value) : fallback];
  });
  return filled(text, new Map(values));
}

function variablesIn({ variables }: JsonRecord): Variable[] {
  if (!isRecord(variables)) return [];
  return Object.entries(variables).map(([name, one]) => ({
    name,
    field: textOf(one, 'field'),
    fallback: textOf(one, 'default'),
  }));
}

function textOf(value: JsonValue, member: string): string {
  const found = isRecord(value) ? value[member] : undefined;
  return typeof found === 'string' ? found : '';
}

const filled = (text: string, values: ReadonlyMap<string, string>): string =>
  text.replaceAll(placeholder, (whole, name: string) => values.get(name.trim()) ?? whole);

function textsIn(value: JsonValue): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isRecord(value) ? Object.values(value).flatMap(textsIn) : [];
}
