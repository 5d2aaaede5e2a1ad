/** Node of a guide. A string is text. The bundler makes the nodes from Markdown (`guides.ts`). */
export type GuideNode = string | GuideElement;

export interface GuideElement {
  tag:
    | 'a'
    | 'blockquote'
    | 'br'
    | 'code'
    | 'del'
    | 'em'
    | 'guide'
    | 'h1'
    | 'h2'
    | 'h3'
    | 'h4'
    | 'h5'
    | 'h6'
    | 'hr'
    | 'li'
    | 'ol'
    | 'p'
    | 'pre'
    | 'strong'
    | 'table'
    | 'td'
    | 'tr'
    | 'ul';
  /** The first row of a `table` contains its titles. */
  children?: GuideNode[];
  /** Anchor of a heading. Anchor of the target of a `guide`. */
  id?: string;
  /** Language of a `pre`. Path of the target of a `guide`. Address of the target of an `a`. */
  to?: string;
  /** First number of an `ol`. */
  start?: number;
}

/** Returns the text of nodes without markup. */
export const textOf = (nodes: readonly GuideNode[] = []): string =>
  nodes.map((node) => (typeof node === 'string' ? node : textOf(node.children))).join('');
