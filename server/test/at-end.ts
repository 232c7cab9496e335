/** What a process of several test files does after the last one. */
export const atEnd: (() => Promise<void>)[] = []
