import { isObject } from '#contract/core/merge-patch.ts'
import { a2aBounds } from '#contract/doors/a2a.ts'
import type { MessageContent, MessagePart } from '#contract/tasks/tasks.ts'
import type { NamedUrl } from '../../engine/files/input-files.ts'
import type { AskedFiles } from '../door-files.ts'
import { badMember } from './problems.ts'

/** A decision on an approval, from a data part of a message. */
export interface Decision {
  approval_id: string
  decision: 'approve' | 'reject'
  arguments: Record<string, unknown> | undefined
  reason: string | null
}

/** A push notification configuration of a request. */
export interface AskedPush {
  id: string | undefined
  url: string
  token: string
  authentication: { scheme: string; credentials: string } | undefined
}

/** The validated parameters of a message. */
export interface AskedMessage extends AskedFiles {
  message_id: string
  task_id: string | undefined
  context_id: string | undefined
  /** Its parts as one text, without decisions on approvals. */
  text: string
  /** Its parts with files. The id of a file is its URL or data URL here. */
  content: MessageContent
  /** Its data part, for agents with an `input_schema`. */
  data: unknown
  decisions: Decision[]
  /** The message as sent, for the history. */
  sent: Record<string, unknown>
  metadata: Record<string, unknown> | undefined
  returnImmediately: boolean
  historyLength: number | undefined
  push: AskedPush | undefined
}

/** The parameters of `SendMessage` and `SendStreamingMessage`. Throws `INVALID_PARAMS` with the invalid member. */
export function readSend(params: unknown): AskedMessage {
  if (!isObject(params)) throw badMember('params', 'must be an object')
  refuseTenant(params)
  const { message, configuration = {}, metadata } = params
  if (!isObject(message)) throw badMember('message', 'must be an object')
  if (!isObject(configuration)) throw badMember('configuration', 'must be an object')
  const message_id = text(message, 'messageId', 'message', a2aBounds.message_id)
  if (message_id === undefined) throw badMember('message.messageId', 'is required')
  const { role } = message
  if (role !== 'ROLE_USER' && role !== 1) throw badMember('message.role', 'must be ROLE_USER')
  const parts = readParts(message['parts'])
  const decisions = parts.flatMap(({ decision }) => (decision ? [decision] : []))
  const said = parts.filter(({ decision }) => !decision)
  requireOutputModes(configuration['acceptedOutputModes'])
  for (const name of ['extensions', 'referenceTaskIds']) {
    const list = message[name]
    if (list !== undefined && list !== null && !(Array.isArray(list) && list.every((one) => typeof one === 'string')))
      throw badMember(`message.${name}`, 'must be a list of texts')
  }
  return {
    message_id,
    task_id: text(message, 'taskId', 'message', a2aBounds.context_id),
    context_id: text(message, 'contextId', 'message', a2aBounds.context_id),
    text: said.flatMap((part) => (part.file ? [] : [part.text])).join('\n\n'),
    content: contentOf(said),
    urls: said.flatMap(({ file }) => (file ? [file] : [])),
    named: [],
    data: said.find((part) => part.data !== undefined)?.data,
    decisions,
    sent: message,
    metadata: readMetadata(message['metadata'] ?? metadata),
    returnImmediately: flag(configuration, 'returnImmediately'),
    historyLength: readHistoryLength(configuration['historyLength'], 'configuration.historyLength'),
    push:
      configuration['taskPushNotificationConfig'] === undefined || configuration['taskPushNotificationConfig'] === null
        ? undefined
        : readPush(configuration['taskPushNotificationConfig'], 'configuration.taskPushNotificationConfig'),
  }
}

/** Refuses a tenant, because ignoring it would suggest an isolation that does not exist. */
export function refuseTenant({ tenant }: Record<string, unknown>): void {
  if (tenant !== undefined && tenant !== null && tenant !== '') throw badMember('tenant', 'is not served by this agent')
}

export function readHistoryLength(value: unknown, field = 'historyLength'): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    throw badMember(field, 'must be a whole number from 0')
  return value
}

/** Validates a push notification configuration. */
export function readPush(given: unknown, place: string): AskedPush {
  if (!isObject(given)) throw badMember(place, 'must be an object')
  const url = text(given, 'url', place, 2048)
  if (url === undefined) throw badMember(`${place}.url`, 'is required')
  const id = text(given, 'id', place, 100)
  if (id !== undefined && !/^[A-Za-z0-9._~-]+$/.test(id))
    throw badMember(`${place}.id`, 'must consist of letters, digits, ., _, ~ and -')
  const { authentication } = given
  const token = text(given, 'token', place, a2aBounds.push_token) ?? ''
  if (!isHeaderValue(token)) throw badMember(`${place}.token`, 'must be visible ASCII characters')
  return { id, url, token, authentication: readAuthentication(authentication, `${place}.authentication`) }
}

function readAuthentication(given: unknown, place: string): AskedPush['authentication'] {
  if (given === undefined || given === null) return undefined
  if (!isObject(given)) throw badMember(place, 'must be an object')
  const scheme = text(given, 'scheme', place, 100)
  if (scheme === undefined || !/^[A-Za-z][A-Za-z0-9-]*$/.test(scheme))
    throw badMember(`${place}.scheme`, 'must be the name of an authentication scheme, such as Bearer')
  const credentials = text(given, 'credentials', place, a2aBounds.push_credentials) ?? ''
  if (!isHeaderValue(credentials)) throw badMember(`${place}.credentials`, 'must be visible ASCII characters')
  return { scheme, credentials }
}

/** Whether a header may have the value: no line breaks, which could start another header. */
function isHeaderValue(value: string): boolean {
  return /^[\x20-\x7e]*$/.test(value)
}

interface ReadPart {
  text: string
  file?: NamedUrl
  data: unknown
  decision: Decision | undefined
}

function readParts(parts: unknown): ReadPart[] {
  if (!Array.isArray(parts) || parts.length === 0)
    throw badMember('message.parts', 'must be a list of at least one part')
  if (parts.length > a2aBounds.parts) throw badMember('message.parts', `must have at most ${a2aBounds.parts} entries`)
  return parts.map((part: unknown, i) => readPart(part, `message.parts[${i}]`))
}

function readPart(part: unknown, place: string): ReadPart {
  if (!isObject(part)) throw badMember(place, 'must be an object')
  const kinds = ['text', 'data', 'raw', 'url'].filter((kind) => part[kind] !== undefined && part[kind] !== null)
  if (kinds.length !== 1) throw badMember(place, 'must have exactly one of text, data, raw and url')
  for (const name of ['filename', 'mediaType'])
    if (![undefined, null].includes(part[name] as undefined) && typeof part[name] !== 'string')
      throw badMember(`${place}.${name}`, 'must be a text')
  if (kinds[0] === 'raw' || kinds[0] === 'url')
    return { text: '', file: readFile(part, place), data: undefined, decision: undefined }
  const { text: said, data } = part
  if (kinds[0] === 'text') {
    if (typeof said !== 'string') throw badMember(`${place}.text`, 'must be a text')
    return { text: said, data: undefined, decision: undefined }
  }
  return { text: JSON.stringify(data), data, decision: readDecision(data, `${place}.data`) }
}

/** Validates a file part: its bytes in base64, or the URL that it is fetched from once. */
export function readFile(part: Record<string, unknown>, place: string): NamedUrl {
  const { raw, url, filename, mediaType } = part
  const media_type = typeof mediaType === 'string' && /^[\w.+-]+\/[\w.+-]+/.exec(mediaType)?.[0]
  const type = media_type && media_type.startsWith('image/') ? 'image' : 'file'
  const name = typeof filename === 'string' && filename !== '' ? filename : undefined
  if (raw !== undefined && raw !== null) {
    if (typeof raw !== 'string' || raw === '') throw badMember(`${place}.raw`, 'must be bytes in base64')
    return { url: `data:${media_type || 'application/octet-stream'};base64,${raw}`, field: `${place}.raw`, type, name }
  }
  if (typeof url !== 'string' || !url.startsWith('https://')) throw badMember(`${place}.url`, 'must be an https: URL')
  return { url, field: `${place}.url`, type, name }
}

/** The content of a message: a text, or parts if it has files. */
function contentOf(parts: readonly ReadPart[]): MessageContent {
  if (!parts.some(({ file }) => file)) return parts.map(({ text }) => text).join('\n\n')
  return parts.flatMap(({ text, file }): MessagePart[] => {
    if (file) return [{ type: file.type ?? 'file', file_id: file.url }]
    return text === '' ? [] : [{ type: 'text', text }]
  })
}

/** A decision, if the data part has an approval id and a decision. */
function readDecision(data: unknown, place: string): Decision | undefined {
  if (!isObject(data) || data['approval_id'] === undefined || data['decision'] === undefined) return undefined
  const { approval_id, decision, arguments: edited, reason } = data
  if (typeof approval_id !== 'string') throw badMember(`${place}.approval_id`, 'must be a text')
  if (decision !== 'approve' && decision !== 'reject') throw badMember(`${place}.decision`, 'must be approve or reject')
  if (edited !== undefined && edited !== null && !isObject(edited))
    throw badMember(`${place}.arguments`, 'must be an object')
  return {
    approval_id,
    decision,
    arguments: isObject(edited) ? edited : undefined,
    reason: typeof reason === 'string' && reason !== '' ? reason.slice(0, 2000) : null,
  }
}

/** Throws if the client accepts neither text nor JSON, the only media types of results. */
function requireOutputModes(modes: unknown): void {
  if (modes === undefined || modes === null) return
  if (!Array.isArray(modes) || !modes.every((mode) => typeof mode === 'string'))
    throw badMember('configuration.acceptedOutputModes', 'must be a list of media types')
  const isUsable = modes.some((mode) => /^(text(\/(plain|\*|markdown))?|application\/json|\*\/\*)$/i.test(mode))
  if (modes.length > 0 && !isUsable)
    throw badMember(
      'configuration.acceptedOutputModes',
      'must have text/plain or application/json',
      'CONTENT_TYPE_NOT_SUPPORTED',
    )
}

function readMetadata(given: unknown): Record<string, unknown> | undefined {
  if (given === undefined || given === null) return undefined
  if (!isObject(given)) throw badMember('metadata', 'must be an object')
  if (Buffer.byteLength(JSON.stringify(given)) > a2aBounds.metadata_bytes)
    throw badMember('metadata', `must have at most ${a2aBounds.metadata_bytes} bytes`)
  return given
}

function flag(of: Record<string, unknown>, name: string): boolean {
  const value = of[name]
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw badMember(`configuration.${name}`, 'must be true or false')
  return value
}

/** An optional text. An empty one counts as absent, as in protocol buffers. */
function text(of: Record<string, unknown>, name: string, place: string, max: number): string | undefined {
  const value = of[name]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string' || value.length > max)
    throw badMember(`${place}.${name}`, `must be a text of 1 to ${max} characters`)
  return value
}

/** A required text member of parameters. */
export function requireText(params: Record<string, unknown>, name: string): string {
  const value = text(params, name, 'params', 255)
  if (value === undefined) throw badMember(name, 'is required')
  return value
}
