import { expect, test } from 'vitest';
import { messageParts } from '../../../ops/console/src/draft/message-parts.ts';

const namesOf = (message: Parameters<typeof messageParts>[0]) =>
  messageParts(message).map(({ name, path }) => [name, path]);

test('the parts of a message are in the order of the form, unknown members last', () => {
  const message = { custom: { a: 1 }, badge: 1, url: 'https://a.example', alert: 'Hi', title: 'T' };
  expect(namesOf(message)).toEqual([
    ['title', 'title'],
    ['alert', 'alert'],
    ['url', 'url'],
    ['badge', 'badge'],
    [undefined, 'custom'],
  ]);
});

test('an alert object is shown by its members', () => {
  const alert = { body: 'Hi', 'loc-key': 'GREETING', title: 'T', subtitle: 'S' };
  expect(namesOf({ alert })).toEqual([
    ['title', 'alert.title'],
    ['subtitle', 'alert.subtitle'],
    ['alert', 'alert.body'],
    [undefined, 'alert.loc-key'],
  ]);
});
