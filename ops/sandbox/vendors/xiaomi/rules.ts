/** Xiaomi's rules for a form (protocol/xiaomi.md#fields), independent of the connector's code. */

/** Broken rule of a request, and the gateway's code for it. */
export interface Fault {
  code: number;
  violation: string;
}

const plainFields = new Set([
  ...['registration_id', 'restricted_package_name', 'title', 'description', 'payload', 'pass_through'],
  ...['notify_type', 'notify_id', 'time_to_live', 'time_to_send'],
]);

const knownExtras = new Set([
  ...['channel_id', 'notify_effect', 'intent_uri', 'web_uri', 'notify_foreground', 'sound_uri', 'badge'],
  ...['only_send_once', 'jobkey', 'flow_control', 'callback', 'callback.param', 'callback.type'],
  ...['template_id', 'template_param'],
]);

const maxTargets = 1000;
const receiptBits = 1 | 2 | 16 | 32 | 64 | 128 | 1024;

const fault = (code: number, violation: string): Fault => ({ code, violation });
const lengthOf = (text: string | null): number => [...(text ?? '')].length;
const isInt = (text: string, from: number, to: number): boolean =>
  /^-?\d{1,15}$/.test(text) && Number(text) >= from && Number(text) <= to;

/** Returns the registration ids of a form, unchecked. */
export function regIdsOf(form: URLSearchParams): string[] {
  const text = form.get('registration_id') ?? '';
  return text === '' ? [] : text.split(',');
}

/** Returns the first broken rule of a form, or null. */
export function faultOf(form: URLSearchParams): Fault | null {
  return (
    namesFault(form) ??
    targetsFault(form) ??
    textsFault(form) ??
    numbersFault(form) ??
    effectFault(form) ??
    templateFault(form) ??
    extrasFault(form)
  );
}

function namesFault(form: URLSearchParams): Fault | null {
  const names = [...form.keys()];
  if (new Set(names).size < names.length) return fault(10008, 'a field twice');
  const unknownField = names.find((name) => !plainFields.has(name) && !name.startsWith('extra.'));
  return unknownField === undefined ? null : fault(10008, `an unknown field ${unknownField.slice(0, 40)}`);
}

function targetsFault(form: URLSearchParams): Fault | null {
  const targets = regIdsOf(form);
  if (targets.length === 0) return fault(10016, 'a request without devices');
  if (targets.length > maxTargets) return fault(10017, `${targets.length} devices in a request`);
  if (new Set(targets).size < targets.length) return fault(10017, 'a device twice in a request');
  // An unescaped plus sign arrives as a blank.
  const hasInvalidId = targets.some((target) => !/^[A-Za-z0-9+/=_-]{10,200}$/.test(target));
  if (hasInvalidId) return fault(66007, 'an invalid registration id');
  const packages = (form.get('restricted_package_name') ?? '').split(',');
  return packages.some((name) => name === '' || Buffer.byteLength(name) > 128)
    ? fault(10016, 'no package name, or one of more than 128 bytes')
    : null;
}

function textsFault(form: URLSearchParams): Fault | null {
  if (!/^[01]$/.test(form.get('pass_through') ?? '')) return fault(10017, 'pass_through is neither 0 nor 1');
  if (Buffer.byteLength(form.get('payload') ?? '') > 4096)
    return fault(65009, 'a payload of more than 4096 bytes');
  if (form.get('pass_through') === '1')
    return form.get('payload') ? null : fault(10016, 'a pass-through message without payload');
  for (const [name, below] of [
    ['title', 50],
    ['description', 128],
  ] as const) {
    const value = form.get(name);
    if ((value ?? '').trim() === '') return fault(10041, `no ${name}`);
    if (lengthOf(value) >= below) return fault(10041, `a ${name} of ${lengthOf(value)} characters`);
  }
  return null;
}

function numbersFault(form: URLSearchParams): Fault | null {
  for (const [name, from, to] of [
    ['notify_type', -1, 7],
    ['notify_id', 0, 2_147_483_647],
    ['time_to_live', 1, 14 * 86_400_000],
    ['time_to_send', 0, 9_999_999_999_999],
  ] as const) {
    const value = form.get(name);
    if (value !== null && !isInt(value, from, to)) return fault(10017, `${name} is ${value.slice(0, 20)}`);
  }
  return null;
}

/**
 * A notification without an effect is a "custom" one, which ended in 2024
 * (protocol/xiaomi.md#what-a-tap-does).
 */
function effectFault(form: URLSearchParams): Fault | null {
  if (form.get('pass_through') === '1') return null;
  const effect = form.get('extra.notify_effect') ?? '';
  if (!/^[123]$/.test(effect)) return fault(10017, 'a notification without notify_effect');
  if (effect === '2' && !form.get('extra.intent_uri')) return fault(10017, 'no intent_uri');
  return effect === '3' && !form.get('extra.web_uri') ? fault(10017, 'no web_uri') : null;
}

/** Checks the fields of a template (protocol/xiaomi.md#templates). */
function templateFault(form: URLSearchParams): Fault | null {
  const id = form.get('extra.template_id');
  const param = form.get('extra.template_param');
  if (id === null && param === null) return null;
  if (!id || param === null || !form.get('extra.channel_id')) return fault(27001, 'half a template');
  try {
    const values: unknown[] = Object.values(JSON.parse(param));
    const isRight = (value: unknown) =>
      typeof value === 'string' &&
      value.trim() !== '' &&
      lengthOf(value) <= 128 &&
      !/[\p{So}\p{Cn}]/u.test(value);
    return values.length <= 9 && values.every(isRight) ? null : fault(10017, 'a wrong value of a template');
  } catch {
    return fault(10017, 'a template_param that is not JSON');
  }
}

function extrasFault(form: URLSearchParams): Fault | null {
  const extras = [...form].flatMap(([name, value]): [string, string][] =>
    name.startsWith('extra.') ? [[name.slice(6), value]] : [],
  );
  const own = extras.filter(([name]) => !knownExtras.has(name) && !name.startsWith('miui.focus.'));
  if (own.length > 10) return fault(65014, `${own.length} extras`);
  const chars = own.reduce((sum, [name, value]) => sum + lengthOf(name) + lengthOf(value), 0);
  if (chars > 1024) return fault(65015, `extras of ${chars} characters`);
  const jobkey = form.get('extra.jobkey');
  if (jobkey !== null && !/^[0-9A-Za-z-][0-9A-Za-z_-]{0,19}$/.test(jobkey))
    return fault(10017, 'a bad jobkey');
  return callbackFault(form);
}

function callbackFault(form: URLSearchParams): Fault | null {
  const url = form.get('extra.callback');
  const param = form.get('extra.callback.param') ?? '';
  const type = Number(form.get('extra.callback.type') ?? 3);
  if (url === null) return param === '' ? null : fault(10008, 'a callback parameter without a URL');
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) return fault(65038, 'an invalid callback URL');
  if (url.length > 1024) return fault(65037, 'a callback URL of more than 1024 characters');
  if (Buffer.byteLength(param) > 64) return fault(65036, 'a callback parameter of more than 64 bytes');
  return Number.isInteger(type) && type > 0 && (type & ~receiptBits) === 0
    ? null
    : fault(10017, `callback.type is ${type}`);
}
