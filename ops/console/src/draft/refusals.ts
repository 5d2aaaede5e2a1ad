/** Codes of refusals that concern one member and do not name it. */
const memberOfCode: Readonly<Record<number, string>> = {
  112: 'channels',
  152: 'push_time',
  102: 'where',
};

/**
 * Returns the member of the body that a refusal of a push is about, as a path with dots:
 * `data.alert`. Undefined where it names none.
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
