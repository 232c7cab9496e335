/**
 * Runs inside a sandbox before the program, and keeps references to the language's functions, which the program may
 * change. Its parameters are a function that stores a line of the console, the environment as JSON, the maximum length
 * of texts, and the functions that read and save files. It returns the functions that turn a value and an error into
 * text.
 */
export const prelude = `(function (keep, env, textMax, read, save) {
  'use strict'
  const { stringify, parse } = JSON
  const { freeze, defineProperty } = Object
  const { isArray } = Array
  const text = String
  const ErrorType = Error
  const apply = Reflect.apply
  const { slice } = String.prototype
  const cut = (string) => apply(slice, string, [0, textMax])
  const plain = (key, value) =>
    typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function' ? text(value) : value
  const explain = (error) => {
    try {
      if (!(error instanceof ErrorType)) return 'Thrown: ' + show(error)
      const at = /run\\.js:\\d+/.exec(error.stack)
      return cut(text(error.name) + ': ' + text(error.message) + (at ? ' (' + at[0] + ')' : ''))
    } catch { return 'Error' }
  }
  const show = (value) => {
    if (typeof value === 'string') return cut(value)
    if (value instanceof ErrorType) return explain(value)
    try { return cut(stringify(value, plain) ?? text(value)) } catch (error) {
      if (error && error.message === 'interrupted') throw error
      return cut('[' + typeof value + ' that is not JSON: ' + text(error && error.message) + ']')
    }
  }
  const line = (...values) => {
    let whole = ''
    for (let i = 0; i < values.length && whole.length < textMax; i++) whole += (i === 0 ? '' : ' ') + show(values[i])
    keep(cut(whole))
  }
  const console = {}
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace']) console[name] = line
  defineProperty(globalThis, 'console', { value: console, writable: true, configurable: true })
  defineProperty(globalThis, 'env', { value: freeze(parse(env)), writable: true, configurable: true })
  const Bytes = Uint8Array
  const Buffers = ArrayBuffer
  const isView = ArrayBuffer.isView
  const { slice: sliceBuffer } = Buffers.prototype
  const plainBytes = (content) => {
    if (content instanceof Buffers) return content
    if (!isView(content)) throw new TypeError('The content of a file must be a string, an ArrayBuffer or a Uint8Array.')
    return apply(sliceBuffer, content.buffer, [content.byteOffset, content.byteOffset + content.byteLength])
  }
  const files = freeze({
    read: (id) => new Bytes(read(text(id))),
    save: (name, content, type) =>
      save(text(name), typeof content === 'string' ? content : plainBytes(content), type === undefined ? '' : text(type)),
  })
  defineProperty(globalThis, 'files', { value: files, writable: true, configurable: true })
  return [show, explain]
})`
