/** Sends a push to the caller's devices. `context.api` calls the service, with the master key on request. */
export default async function remindMe({ text }, context) {
  const user = await context.user();
  // An error with a code goes to the caller with its message; any other error goes to the log only.
  if (!user) throw Object.assign(new Error('Log in first.'), { code: 206, status: 403 });
  const push = { where: { user: user.objectId }, data: { alert: String(text) } };
  const { objectId } = await context.api('POST', '/push', push, { master: true });
  return { push: objectId };
}
