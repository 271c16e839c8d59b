// Parts of 1.3.0 to and from the plain view of cases.mjs.
export function partOut(part) {
  const named = { metadata: undefined, filename: part.name ?? '', mediaType: part.type ?? '' };
  if ('text' in part) return { content: { $case: 'text', value: part.text }, ...named };
  if ('bytes' in part) return { content: { $case: 'raw', value: Buffer.from(part.bytes, 'base64') }, ...named };
  if ('url' in part) return { content: { $case: 'url', value: part.url }, ...named };
  return { content: { $case: 'data', value: part.data }, ...named };
}

export function partIn(part) {
  const { $case, value } = part.content;
  const named = { ...(part.filename && { name: part.filename }), type: part.mediaType };
  if ($case === 'text') return { text: value };
  if ($case === 'raw') return { bytes: Buffer.from(value).toString('base64'), ...named };
  if ($case === 'url') return { url: value, ...named };
  return { data: value };
}
