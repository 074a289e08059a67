const block: Buffer = Buffer.alloc(64 << 20, 'x');
console.log('allocated', block.length);
