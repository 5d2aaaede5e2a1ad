import { isRecord, type JsonRecord, type JsonValue, parseJsonText } from './json-text.ts';

/** Body of a push made from another push. */
export interface CopiedBody {
  body: JsonRecord;
  /** False where the record has not all devices of a list, or shows their tokens shortened. */
  isWhole: boolean;
}

/** Returns a reply of the API as JSON of a draft. */
export const toJson = (value: unknown): JsonValue => parseJsonText(JSON.stringify(value ?? null));

/** Returns the body that sends what the record of a push (its `request`) says. Times and ids are not copied. */
export function bodyOfRequest(request: JsonRecord): CopiedBody {
  const { data, languages, variables, target, prod, topic, teamId, flowControl, notificationChannel } =
    request;
  const inData = isRecord(data) ? data._notificationChannel : undefined;
  const members: [string, JsonValue | undefined][] = [
    ['data', data],
    ['languages', languages],
    ['variables', variables],
    ['prod', prod === 'dev' ? 'dev' : undefined],
    ['topic', topic],
    ['apns_team_id', teamId],
    ['flow_control', flowControl],
    ['_notificationChannel', inData === notificationChannel ? undefined : notificationChannel],
  ];
  const { isWhole, ...chosen } = targetOf(target);
  return { body: { ...chosen.members, ...present(members) }, isWhole };
}

function targetOf(target: JsonValue | undefined): { members: JsonRecord; isWhole: boolean } {
  if (!isRecord(target)) return { members: { where: {} }, isWhole: false };
  if (target.kind !== 'devices')
    return {
      members: present([
        ['where', target.where ?? {}],
        ['channels', target.channels],
      ]),
      isWhole: true,
    };
  const ids = Array.isArray(target.deviceIds) ? target.deviceIds : [];
  const isShort = ids.some((id) => typeof id === 'string' && id.includes('…'));
  const members: [string, JsonValue | undefined][] = [
    ['device_type', target.deviceType],
    ['device_ids', ids],
    ['vendor', target.vendor],
    ['device_profile', target.deviceProfile],
  ];
  return { members: present(members), isWhole: !isShort && target.listed === ids.length };
}

const present = (members: [string, JsonValue | undefined][]): JsonRecord =>
  Object.fromEntries(
    members.filter((member): member is [string, JsonValue] => member[1] !== undefined && member[1] !== null),
  );
