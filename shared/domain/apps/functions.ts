import { refuse } from '../errors/errors.ts';

/**
 * Environment of an app's functions, selected by the header `X-LC-Prod`
 * (protocol/functions.md#environments).
 */
export type FunctionStage = 'production' | 'staging';

/**
 * Hooks of the class `_User` (protocol/functions.md#hooks), with their names in the list of a
 * function host.
 */
export const userHooks = {
  beforeSave: '__before_save_for__User',
  afterSave: '__after_save_for__User',
  beforeUpdate: '__before_update_for__User',
  afterUpdate: '__after_update_for__User',
  beforeDelete: '__before_delete_for__User',
  afterDelete: '__after_delete_for__User',
} as const;

/** Hooks of user events with their paths and names. */
export const eventHooks = {
  onLogin: { path: '_User/onLogin', name: '__on_login__User' },
  onAuthData: { path: '_User/onAuthData', name: '__on_authdata__User' },
  onVerifiedSms: { path: 'onVerified/sms', name: '__on_verified_sms' },
  onVerifiedEmail: { path: 'onVerified/email', name: '__on_verified_email' },
} as const;

export type UserHook = keyof typeof userHooks;
export type EventHook = keyof typeof eventHooks;
export type HookName = UserHook | EventHook;

/**
 * Form of function names. They begin with a letter or `_`, so that `.` and `..` are not valid
 * names.
 */
const functionName = /^[\p{L}_][\p{L}\p{N}_.:-]{0,127}$/u;

/**
 * Checks the name of a function. Throws error 404 if the name is invalid. Names of members that
 * every object inherits are invalid too, because a host might find them
 * (protocol/known-problems.md#function-dispatch).
 */
export function checkFunctionName(name: string): string {
  if (!functionName.test(name) || name in Object.prototype || name === 'prototype')
    throw refuse('noSuchFunction', 'No such cloud function.');
  return name;
}

/**
 * True if a name is reserved for hooks and functions of the service. Callers of an app may not call
 * these.
 */
export const isInternalName = (name: string): boolean => name.startsWith('_');
