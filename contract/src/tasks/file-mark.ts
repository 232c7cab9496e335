/** How a file stands in a text that takes the place of its message. */
export function fileMark({ type, file_id }: { type: string; file_id: string }): string {
  return `[${type} ${file_id}]`
}
