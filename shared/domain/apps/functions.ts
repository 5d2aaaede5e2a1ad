import { refuse } from '../errors/errors.ts';

/** Where an app's functions run: `X-LC-Prod` chooses (protocol/functions.md#environments). */
export type FunctionStage = 'production' | 'staging';

/** Class hooks that `_User` has (protocol/functions.md#hooks), and what a function host calls them in its list of names. */
export const userHooks = {
  beforeSave: '__before_save_for__User',
  afterSave: '__after_save_for__User',
  beforeUpdate: '__before_update_for__User',
  afterUpdate: '__after_update_for__User',
  beforeDelete: '__before_delete_for__User',
  afterDelete: '__after_delete_for__User',
} as const;

/** Hooks of what a user does, with their paths and names. */
export const eventHooks = {
  onLogin: { path: '_User/onLogin', name: '__on_login__User' },
  onAuthData: { path: '_User/onAuthData', name: '__on_authdata__User' },
  onVerifiedSms: { path: 'onVerified/sms', name: '__on_verified_sms' },
  onVerifiedEmail: { path: 'onVerified/email', name: '__on_verified_email' },
} as const;

export type UserHook = keyof typeof userHooks;
export type EventHook = keyof typeof eventHooks;
export type HookName = UserHook | EventHook;

/** A letter of any script, or `_`, first: so neither `.` nor `..` is a name, and nothing ends the path. */
const functionName = /^[\p{L}_][\p{L}\p{N}_.:-]{0,127}$/u;

/**
 * Checks the name of a function. Throws 404 for one that none can have: what every object inherits is no function
 * of an app, however a host looks names up (protocol/known-problems.md#function-dispatch).
 */
export function checkFunctionName(name: string): string {
  if (!functionName.test(name) || name in Object.prototype || name === 'prototype')
    throw refuse('noSuchFunction', 'No such cloud function.');
  return name;
}

/** Hooks and functions of the service itself go by names like these; apps' callers have no business with them. */
export const isInternalName = (name: string): boolean => name.startsWith('_');
