import { call, form, list, once, url } from '../operation.ts'

const clients = '/api/v1/auth/oauth-clients'
const webhook = '/api/v1/webhooks/{webhook_id}'
const delivery = `${webhook}/deliveries/{delivery_id}` as const

export const oauthMethods = {
  /** Ask a user for access: where a browser goes to. */
  authorizeUrl: url('authorize', 'GET', '/oauth2/authorize'),
  /** Exchange a code, or refresh. */
  token: form('issueToken', 'POST', '/oauth2/token', 'body'),
  /** Ask a user for access, from a device without a browser. */
  authorizeDevice: form('authorizeDevice', 'POST', '/oauth2/device', 'body'),
  /** Revoke a token. */
  revoke: form('revokeToken', 'POST', '/oauth2/revoke', 'body'),
  /** Register an OAuth app. Its secret is in this answer only. */
  createClient: once('createOAuthClient', 'POST', clients, 'body'),
  /** List OAuth apps. */
  listClients: list('listOAuthClients', 'GET', clients, 'oauth_clients'),
  /** Read an OAuth app. */
  getClient: call('getOAuthClient', 'GET', `${clients}/{client_id}`),
  /** Update an OAuth app. */
  updateClient: call('updateOAuthClient', 'PUT', `${clients}/{client_id}`, 'body'),
  /** Delete an OAuth app. */
  deleteClient: call('deleteOAuthClient', 'DELETE', `${clients}/{client_id}`),
}

export const webhookMethods = {
  /** Register a webhook. */
  create: call('createWebhook', 'POST', '/api/v1/webhooks', 'body'),
  /** List webhooks. */
  list: list('listWebhooks', 'GET', '/api/v1/webhooks', 'webhooks'),
  /** Read a webhook. */
  get: call('getWebhook', 'GET', webhook),
  /** Update a webhook. */
  update: call('updateWebhook', 'PUT', webhook, 'body'),
  /** Delete a webhook. */
  delete: call('deleteWebhook', 'DELETE', webhook),
  /** Rotate the secret of a webhook. */
  rotateSecret: call('rotateWebhookSecret', 'POST', `${webhook}/rotate-secret`, 'body'),
  /** Test a webhook. */
  test: call('testWebhook', 'POST', `${webhook}/test`, 'body'),
  /** List deliveries of a webhook. */
  listDeliveries: list('listDeliveries', 'GET', `${webhook}/deliveries`, 'deliveries'),
  /** Read a delivery. */
  getDelivery: call('getDelivery', 'GET', delivery),
  /** Deliver again. */
  redeliver: call('redeliverDelivery', 'POST', `${delivery}/redeliver`),
  /** Deliver again what failed. */
  recover: call('recoverDeliveries', 'POST', `${webhook}/recover`, 'body'),
}

export const serviceMethods = {
  /** Say hello. */
  hello: call('hello', 'GET', '/api/v1/hello', 'query'),
  /** Read the service's status. */
  status: call('getStatus', 'GET', '/api/v1/status'),
  /** List model providers. */
  modelProviders: call('listModelProviders', 'GET', '/api/v1/model-providers'),
  /** Read the OpenAPI document of the service. */
  docs: call('getDocs', 'GET', '/api/v1/docs'),
}
