/** Work of a process of several test files after the last one. */
export const atEnd: (() => Promise<void>)[] = []

/** Whether `tools/tests/group.ts` runs several files here, and calls `atEnd` after the last one. */
export const isGroup = process.env['CADRE_TEST_GROUP'] !== undefined
