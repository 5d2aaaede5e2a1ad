/** Runs before a user is made. What it changes is stored; what it throws, the caller reads (code 142). */
export default function beforeSave(user) {
  if (user.username.startsWith('admin'))
    throw Object.assign(new Error('This name is reserved.'), { code: 1 });
  user.displayName ??= user.username;
}
