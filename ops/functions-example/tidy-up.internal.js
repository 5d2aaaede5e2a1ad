/** For the master key and the hook key only, by its name `….internal.js`: POST /1.1/functions/tidy-up */
export default async function tidyUp(_, context) {
  const { count } = await context.api('GET', '/installations?count=1&limit=0', undefined, { master: true });
  return { installations: count };
}
