/** Runs before a user is created. Its changes are stored; an error that it throws goes to the caller (code 142). */
export default function beforeSave(user) {
  if (user.username.startsWith('admin'))
    throw Object.assign(new Error('This name is reserved.'), { code: 1 });
  user.displayName ??= user.username;
}
