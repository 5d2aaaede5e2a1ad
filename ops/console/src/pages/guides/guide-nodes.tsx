import { Link } from '@tanstack/react-router';
import { Children, type ReactNode } from 'react';
import { Snippet } from '../../kit/controls/copy.tsx';
import styles from './guide.module.css';
import { type GuideElement, type GuideNode, textOf } from './guide-tree.ts';

/** Nodes of a guide, in order. */
export function GuideNodes({
  nodes = [],
}: {
  nodes?: readonly GuideNode[] | undefined;
}): ReactNode {
  return list(nodes, (node) => (typeof node === 'string' ? node : <GuideElementView {...node} />));
}

/** Returns the elements of a list. Their positions are their keys, because a guide does not change. */
const list = <T,>(items: readonly T[], show: (item: T, at: number) => ReactNode): ReactNode =>
  Children.toArray(items.map(show));

function GuideElementView({ tag: Tag, children, id, to = '', start }: GuideElement): ReactNode {
  switch (Tag) {
    case 'a':
      return (
        <a href={to} target="_blank" rel="noreferrer">
          <GuideNodes nodes={children} />
        </a>
      );
    case 'guide':
      return (
        <Link to="/docs/$" params={{ _splat: to }} hash={id}>
          <GuideNodes nodes={children} />
        </Link>
      );
    case 'br':
    case 'hr':
      return <Tag />;
    case 'pre':
      return <Snippet label={to} text={textOf(children)} />;
    case 'table':
      return <GuideTable rows={children} />;
    default:
      return (
        <Tag id={id} start={start}>
          <GuideNodes nodes={children} />
        </Tag>
      );
  }
}

/** Table whose first row contains the titles. On a phone each row is a card. */
function GuideTable({ rows = [] }: { rows?: readonly GuideNode[] }) {
  const [head = [], ...body] = rows.map(childrenOf);
  const titles = head.map((cell) => textOf([cell]));
  const label = titles.filter((title) => title !== '').join(', ');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
    <section className={styles.scroll} aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {list(titles, (title) => (
              <th scope="col">{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {list(body, (row) => (
            <tr>
              {list(row, (cell, at) => (
                <td data-title={titles[at]}>
                  <div>
                    <GuideNodes nodes={childrenOf(cell)} />
                  </div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const childrenOf = (node: GuideNode): readonly GuideNode[] =>
  typeof node === 'string' ? [node] : (node.children ?? []);
