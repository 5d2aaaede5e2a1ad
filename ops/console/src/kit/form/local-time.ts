/** Returns the time of a field `datetime-local`, in ISO 8601; undefined for an empty field. */
export const isoTime = (local: string): string | undefined =>
  local === '' ? undefined : new Date(local).toISOString();

/** Returns a time as such a field has it: in the zone of the reader, without a zone. */
export function localTime(iso: string | undefined): string {
  if (iso === undefined || Number.isNaN(Date.parse(iso))) return '';
  const time = new Date(iso);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
