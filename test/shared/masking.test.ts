import { expect, test } from 'vitest';
import { shortened } from '../../shared/domain/admin/masking.ts';

test.each(['a😀😀', '12345😀', '12345😀78901234567890'])(
  'the beginning of %s is a text that PostgreSQL stores',
  (text) => {
    expect(shortened(text).isWellFormed()).toBe(true);
  },
);
