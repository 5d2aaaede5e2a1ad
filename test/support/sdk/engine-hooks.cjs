// All hooks of `_User`, with effects that tests can observe.
module.exports = ({ AV, tell, told }) => {
  const { Cloud } = AV;
  const by = (request) => request.currentUser?.id ?? null;

  Cloud.beforeSave('_User', async (request) => {
    const { object } = request;
    tell('beforeSave', { object: told(object), by: by(request) });
    if (object.get('nickname') === 'refused')
      throw new Cloud.Error('no such nickname', { code: 4711 });
    if (object.get('nickname') === 'slow') await new Promise(() => undefined);
    if (object.get('nickname') === 'odd') object.set('mobilePhoneNumber', 'not a number');
    object.set('seenBy', 'node');
    object.set('greeting', `Hello ${object.get('username')}`);
  });
  Cloud.afterSave('_User', async ({ object }) => {
    tell('afterSave', { object: told(object) });
    if (object.get('nickname') !== 'written') return;
    object.set('writtenBack', true);
    await object.save(null, { useMasterKey: true });
  });
  Cloud.beforeUpdate('_User', (request) => {
    const { object } = request;
    tell('beforeUpdate', { object: told(object), keys: object.updatedKeys, by: by(request) });
    if (object.get('nickname') === 'refused') throw new Cloud.Error('no such nickname');
  });
  Cloud.afterUpdate('_User', ({ object }) => {
    tell('afterUpdate', { object: told(object), keys: object.updatedKeys });
  });
  Cloud.beforeDelete('_User', ({ object }) => {
    tell('beforeDelete', { object: told(object) });
    if (object.get('nickname') === 'kept') throw new Cloud.Error('this one stays');
  });
  Cloud.afterDelete('_User', ({ object }) => tell('afterDelete', { object: told(object) }));
  Cloud.onLogin(({ object }) => {
    tell('onLogin', { object: told(object) });
    if (object.get('nickname') === 'barred') throw new Cloud.Error('barred');
  });
  Cloud.onAuthData((request) => {
    tell('onAuthData', { authData: request.authData });
    if (request.authData.forbidden) throw new Cloud.Error('not this platform');
    if (request.authData.renamed) {
      const { renamed } = request.authData;
      return { renamed: { ...renamed, uid: `host-${renamed.uid}` } };
    }
    return request.authData;
  });
  Cloud.onVerified('sms', ({ object }) => tell('onVerified/sms', { object: told(object) }));
  Cloud.onVerified('email', ({ object }) => tell('onVerified/email', { object: told(object) }));
};
