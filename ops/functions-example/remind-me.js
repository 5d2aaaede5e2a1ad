/** Pushes to the devices of the user who calls: `context.api` speaks to the service, with the master key where asked. */
export default async function remindMe({ text }, context) {
  const user = await context.user();
  // An error with a code goes to the caller with its words; any other is a defect, and stays in the log.
  if (!user) throw Object.assign(new Error('Log in first.'), { code: 206, status: 403 });
  const push = { where: { user: user.objectId }, data: { alert: String(text) } };
  const { objectId } = await context.api('POST', '/push', push, { master: true });
  return { push: objectId };
}
