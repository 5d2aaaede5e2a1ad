/** Refusal codes that concern one member but do not name it. */
const memberOfCode: Readonly<Record<number, string>> = {
  112: 'channels',
  152: 'push_time',
  102: 'where',
};

/**
 * Returns the member of the body that a refusal is about, as a dotted path such as `data.alert`.
 * Returns undefined if the refusal concerns no single member.
 */
export function memberOfRefusal({
  code,
  message,
}: {
  code: number;
  message: string;
}): string | undefined {
  const named =
    /^([A-Za-z_][\w.-]*): /.exec(message)?.[1] ?? /^([A-Za-z_]\w*) is required/.exec(message)?.[1];
  return named ?? memberOfCode[code];
}
