import { expect, expectTypeOf, test } from 'vitest';
import { app } from '../../../api/replies/admin/apps.ts';
import type { Reply } from '../../../ops/client/client.ts';
import type { App, Breaker, PushProgress, PushRecord } from '../../../ops/client/operations.ts';

test('types of the admin API client match the schemas', () => {
  expectTypeOf<App>().toHaveProperty('masterKey').toEqualTypeOf<string>();
  expectTypeOf<App['plan']>().toEqualTypeOf<'commercial' | 'development'>();
  expectTypeOf<App['options']['pushCallsPerMinute']>().toEqualTypeOf<number>();
  expectTypeOf<Reply<'listBreakers'>['results'][number]['state']>().toEqualTypeOf<
    'closed' | 'half-open' | 'open'
  >();
  expectTypeOf<Breaker['forced']>().toEqualTypeOf<'open' | 'closed' | null>();
  expectTypeOf<PushProgress['outcomes']['invalid_token']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<PushRecord['status']>().toEqualTypeOf<string>();
  // @ts-expect-error: the reply has no such member
  expectTypeOf<App>().toHaveProperty('secret');
});

test('the schema of an app refuses an app without a key', () => {
  expect(app.safeParse({ appId: 'a', name: 'b' }).success).toBe(false);
});
