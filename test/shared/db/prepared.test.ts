import { expect, test } from 'vitest';
import { maxStatements, PreparedStatements } from '../../../shared/db/prepared.ts';

test('a function prepares a limited number of statements, each under one name', () => {
  const statements = new PreparedStatements();
  const texts = Array.from({ length: maxStatements }, (_, i) => `SELECT ${i}`);
  const names = texts.map((text) => statements.of(text));
  expect(new Set(names.map((statement) => JSON.stringify(statement))).size).toBe(maxStatements);
  expect(statements.of('SELECT 1 + 1')).toBe('SELECT 1 + 1');
  expect(statements.of('SELECT 0')).toEqual({ name: expect.any(String), text: 'SELECT 0' });
  expect(statements.of('SELECT 0')).toBe(names[0]);
});
