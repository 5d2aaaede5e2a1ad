import { apnsFixture } from '../apns/fixture.ts';
import { fcmFixture, vendorGFixture } from '../fcm/fixture.ts';
import { honorFixture } from '../vendors/honor/fixture.ts';
import { huaweiFixture } from '../vendors/huawei/fixture.ts';
import { meizuFixture } from '../vendors/meizu/fixture.ts';
import { oppoFixture } from '../vendors/oppo/fixture.ts';
import { vivoFixture } from '../vendors/vivo/fixture.ts';
import { xiaomiFixture } from '../vendors/xiaomi/fixture.ts';
import type { Fixture } from './fixture.ts';

/** Every connector that takes credentials has a fixture: the contract suite runs over them. */
export const fixtures: Fixture[] = [
  apnsFixture,
  fcmFixture,
  vendorGFixture,
  huaweiFixture,
  honorFixture,
  xiaomiFixture,
  meizuFixture,
  oppoFixture,
  vivoFixture,
];
