/**
 * Text in which names between backticks are code, as the texts of the server and of the page have
 * them.
 */
export function Marked({ text }: { text: string }) {
  // Every second part stood between backticks.
  return text.split('`').map((part, at) =>
    at % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text do not move.
      <code key={at} translate="no">
        {part}
      </code>
    ),
  );
}
