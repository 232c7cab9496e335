import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedSearch, searchAsText, searchOfText } from './search-text.ts'

test('a change of the address keeps the other words, and takes out what is undefined or empty', () => {
  const search = { status: 'failed', offset: 50, tail: true }
  assert.deepEqual(changedSearch(search, { status: undefined, q: '' }), { offset: 50, tail: true })
  assert.deepEqual(changedSearch(search, { offset: 0, tail: false }), { status: 'failed', offset: 0, tail: false })
  assert.deepEqual(search, { status: 'failed', offset: 50, tail: true })
})

test('the words of the address are read as text and written with whole numbers as numbers', () => {
  assert.deepEqual(searchAsText({ page: 2, range: '1h', all: true, key: undefined }), {
    page: '2',
    range: '1h',
    all: 'true',
    key: undefined,
  })
  assert.deepEqual(searchOfText({ page: '2', range: '1h', key: undefined }), { page: 2, range: '1h', key: undefined })
  // Too long for an exact number, or none at all: these stay text.
  assert.deepEqual(searchOfText({ a: '1234567890', b: '1.5', c: '-1', d: '' }), {
    a: '1234567890',
    b: '1.5',
    c: '-1',
    d: '',
  })
})
